// Package calls declares the calls of the player API as Go functions. The checks of a request and the OpenAPI documents come from the
// same declaration. A set of calls for one kind of principal is a Realm.
package calls
