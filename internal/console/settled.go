package console

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	screen "github.com/musterhq/muster/internal/terminal"
)

// settled replaces bidirectional control characters in the text of a page, because a name, such as a player's, could otherwise reorder the words
// around it. Names also occur within sentences, so no element isolates them. Attributes and text areas are not changed: links and forms must have the
// exact values. For letters of right-to-left scripts, console.css is enough.
func settled(page []byte) []byte {
	if bytes.IndexFunc(page, screen.TurnsText) < 0 {
		return page
	}
	clean := make([]byte, 0, len(page))
	var quote byte // of the attribute's value that the loop is in
	inTag, inArea := false, false
	for i := 0; i < len(page); {
		r, n := utf8.DecodeRune(page[i:])
		switch c := page[i]; {
		case inTag && quote != 0:
			if c == quote {
				quote = 0
			}
		case inTag && (c == '"' || c == '\''):
			quote = c
		case inTag:
			inTag = c != '>'
		case c == '<':
			inTag = true
			if bytes.HasPrefix(page[i:], []byte("<textarea")) {
				inArea = true
			} else if bytes.HasPrefix(page[i:], []byte("</textarea")) {
				inArea = false
			}
		case !inArea && screen.TurnsText(r):
			clean = utf8.AppendRune(clean, unicode.ReplacementChar)
			i += n
			continue
		}
		clean = append(clean, page[i:i+n]...)
		i += n
	}
	return clean
}
