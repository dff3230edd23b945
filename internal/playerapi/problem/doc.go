// Package problem defines how the player API refuses a request: each code has an HTTP status and the action for the client. It
// maps the refusals of the core, and of the studio's hooks, to such answers, and checks single fields.
package problem
