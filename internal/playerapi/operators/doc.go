// Package operators declares the calls of operators: explanation and release of players, configuration, and maintenance. Every call needs
// a reason, and is logged.
package operators
