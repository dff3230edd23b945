// Package excerpt bounds texts without cutting a character in two.
package excerpt

import "unicode/utf8"

// Begin returns the beginning of a text, at most `most` bytes.
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

// End returns the end of a text, at most `most` bytes.
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

// shortBytes is the most bytes of a value from outside that a message repeats.
const shortBytes = 100

// Short shortens a value for an error message or a log line, and marks that it did.
func Short(s string) string {
	if begin := Begin(s, shortBytes); begin != s {
		return begin + "…"
	}
	return s
}
