// Package console is the door of people: web pages at /console that show what runs, who plays where, and why something waits, and forms that change it.
//
// Pages are Go templates. A page that is open follows the state: htmx fetches it again when the event stream says that something has changed, and morphs what differs. Everything is in
// the binary; no page asks another host for anything, and the content security policy allows no inline script or style.
//
// What a person changes is an action: a page with a form that works without scripts, and carries out an operation of the service API with the rights of the person's access key.
//
// Nothing is stored for a person who has signed in: the cookie is a signed statement which access key has signed in until when, and each request checks that the
// key is still valid and that its role may look. So every node of a cluster accepts it, and a revoked key is out at once.
package console
