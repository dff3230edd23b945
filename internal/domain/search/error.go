package search

import "fmt"

// SyntaxError is the position at which a filter or an order is invalid, with the reason.
type SyntaxError struct {
	At    int    // characters before the token
	Token string // as it was written, cut when it is long; empty at the end of the text
	Want  string // the expected token
}

func (e *SyntaxError) Error() string {
	token := e.Token
	switch {
	case token == "":
		token = "the end"
	case token[0] != '\'': // a string includes its quotes
		token = "'" + token + "'"
	}
	return fmt.Sprintf("character %d: got %s, want %s", e.At+1, token, e.Want)
}

// tokenShown is the most characters of a token that an error repeats.
const tokenShown = 40

func shown(token string) string {
	n := 0
	for i := range token {
		if n == tokenShown {
			return token[:i] + "…"
		}
		n++
	}
	return token
}
