// Package people is the door at which people sign in: through the identity providers of the settings, by OpenID Connect, or as people of the cell's
// own, with passkeys. Its pages are at /signin.
//
// # For other doors
//
// A browser whose person has signed in carries a cookie that names a sign-in session of the state. A door that needs a person does this:
//
//	person, ok := d.people.Browser(r)
//	if !ok {
//		d.people.SignIn(w, r, r.URL.RequestURI()) // shows the page for signing in, which comes back to this path
//		return
//	}
//	credentials, err := d.people.Issue(ctx, origin, &person, identity.Backend, time.Hour)
//
// Browser, Session and Issue ask the state of this node, so they are quick and notice the end of a session within milliseconds everywhere. The
// temporary credentials that Issue makes end with the session, and as soon as the person's roles do not cover theirs. End ends a session: when it returns,
// this node refuses them. A program that keeps the id of a session (Person.SignIn), for example in a token of its own, finds the person again with
// Session. The id is no secret and proves nothing; what carries it has to be signed.
//
// A form on a page of such a door must be protected with OwnPage: the cookie is sent with navigations from other sites, so a GET must change nothing.
//
// # How a person signs in
//
// The page /signin lists the providers. /signin/start/PROVIDER sends the browser to one, and the provider sends it back to /signin/callback/PROVIDER with a
// code, which the service exchanges for an ID token. What has to match (state, nonce, the PKCE verifier, the provider, where to go afterwards) is in a
// signed cookie for ten minutes, so any node of a cluster can finish what another has begun, and nothing is kept for strangers.
//
// What the provider says is confirmed again before each half of the file's Recheck is over, at the node that decides, with the refresh token
// of the session. It is in the state, encrypted with a key that is derived from the cell's secret. A session without one ends after Recheck.
package people
