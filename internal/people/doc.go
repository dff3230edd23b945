// Package people is the door at which people sign in: through the identity providers in the settings, by OpenID Connect, or as the cell's
// own people, with passkeys. Its pages are at /signin.
//
// # For other doors
//
// The browser of a person who has signed in sends a cookie that names a sign-in session in the state. A door that needs a person does this:
//
//	person, ok := d.people.Browser(r)
//	if !ok {
//		d.people.SignIn(w, r, r.URL.RequestURI()) // shows the sign-in page, which returns to this path
//		return
//	}
//	credentials, err := d.people.Issue(ctx, origin, &person, identity.Backend, time.Hour)
//
// Browser, Session and Issue use the state of this node, so they are fast, and notice the end of a session within milliseconds on every node. The
// temporary credentials from Issue end with the session, or as soon as the person's roles no longer cover theirs. End ends a session: when it returns,
// this node refuses its credentials. A program that keeps the id of a session (Person.SignIn), for example in a token of its own, finds the person again with
// Session. The id is no secret and proves nothing; whatever contains it must be signed.
//
// A form on a page of such a door must be protected with OwnPage: the cookie is sent with navigations from other sites, so a GET must change nothing.
//
// # How a person signs in
//
// The page /signin lists the providers. /signin/start/PROVIDER sends the browser to one, and the provider sends it back to /signin/callback/PROVIDER with a
// code, which the service exchanges for an ID token. A signed cookie holds for ten minutes what must match: state, nonce, the PKCE verifier, the provider, and the
// page to continue with. So any node of a cluster can finish a sign-in that another began, and the service stores nothing for strangers.
//
// The leader asks the provider to confirm the person again each time half of the file's Recheck has passed, with the refresh token of the session. The token is in
// the state, encrypted with a key that is derived from the cell's secret. A session without a refresh token ends after Recheck.
package people
