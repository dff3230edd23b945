package agentproto

import "bytes"

// LastLines returns where the last lines of a text begin. A part of a line at its end counts as a line.
func LastLines(text []byte, lines int) int {
	at := len(text)
	if at > 0 && text[at-1] == '\n' {
		at--
	}
	for range lines {
		at = bytes.LastIndexByte(text[:at], '\n')
		if at < 0 {
			return 0
		}
	}
	return at + 1
}
