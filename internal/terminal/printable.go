// Package terminal keeps what a service answers from controlling the terminal that shows it.
package terminal

import (
	"strings"
	"unicode"
)

// Printable removes control characters from names that outsiders chose, such as a player's, so that they cannot control the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
