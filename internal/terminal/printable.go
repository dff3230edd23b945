// Package terminal keeps a service's answers from controlling the terminal that shows them.
package terminal

import (
	"strings"
	"unicode"
)

// TurnsText reports whether a character changes the direction of the following text (Bidi_Control in Unicode).
func TurnsText(r rune) bool { return r > unicode.MaxLatin1 && unicode.Is(unicode.Bidi_Control, r) }

// Steers reports whether a character controls a terminal or changes the direction of text.
func Steers(r rune) bool { return unicode.IsControl(r) || TurnsText(r) }

// Printable removes control characters from names that outsiders chose, such as a player's, so that they cannot control the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
