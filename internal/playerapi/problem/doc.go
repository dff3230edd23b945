// Package problem defines how the player API refuses a request: each code with its HTTP status and with what the client should do.
// It maps the refusals of the core, and of the studio's hooks, to such answers, and checks single fields.
package problem
