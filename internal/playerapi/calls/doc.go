// Package calls declares the calls of the player API as Go functions. What is checked of a request and what the OpenAPI documents
// say come from the same declaration. A set of calls for one kind of principal is a Realm.
package calls
