// Package excerpt bounds texts without cutting a character in two.
package excerpt

import "unicode/utf8"

// Begin returns the first bytes of a text, at most so many.
func Begin(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// End returns the last bytes of a text, at most so many.
func End(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := len(s) - most
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return s[cut:]
}

// shortBytes is the most that a message repeats of a value from outside.
const shortBytes = 100

// Short shortens a value for an error message or a line of the log, and marks that it did.
func Short(s string) string {
	if begin := Begin(s, shortBytes); begin != s {
		return begin + "…"
	}
	return s
}
