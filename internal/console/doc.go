// Package console is the door for people: web pages at /console that show what runs, who plays where, and why something waits, and forms that change
// it.
//
// Pages are Go templates. An open page follows the state: htmx fetches it again when the event stream reports a change, and morphs the differences.
// Everything is in the binary; no page makes requests to another host, and the content security policy allows no inline scripts or styles.
//
// A change is an action: a page with a form that works without scripts, and executes an operation of the service API with the rights of the person's
// access key.
//
// No session is stored for a person who has signed in: the cookie is a signed statement of which access key has signed in until when, and each
// request checks that the key is still valid and that its role may look. So every node of a cluster accepts the cookie, and revoking a key ends its
// sessions at once.
package console
