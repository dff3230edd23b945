package ruleset

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// part is the part of the selected teams that a property names.
type part uint8

const (
	partTeams part = iota
	partPlayers
	partIDs
	partAttribute
)

// syntax is a parsed expression before its names are resolved.
type syntax struct {
	calls     []string // functions, the outermost first
	names     []string // the selected teams
	all       bool     // teams[*]
	part      part
	attribute string
}

// expressionSyntax is the position at which a text is not an expression, with the reason.
type expressionSyntax struct {
	at   int // bytes before it
	text string
}

// expressionParser reads
//
//	expression = function "(" expression ")" | property
//	property   = "teams" "[" ( "*" | name { "," name } ) "]" [ ".players" [ "[playerId]" | ".attributes[" name "]" ] ]
//
// Functions take one argument, so the parser does not recurse, and reads text of any length in one pass.
type expressionParser struct {
	text string
	at   int
	err  *expressionSyntax
}

// parseExpression parses an expression. A text that is not one is a literal where literals are allowed.
func parseExpression(text string) (syntax, *expressionSyntax) {
	p := &expressionParser{text: text}
	s := p.expression()
	return s, p.err
}

func (p *expressionParser) expression() (s syntax) {
	for {
		at := p.skip()
		word := p.word()
		if word == "teams" {
			break
		}
		if operations[word] == 0 {
			p.fail(at, "want a function or teams[…], got %s", p.shown(at))
			return s
		}
		s.calls = append(s.calls, word)
		p.want("(")
		if p.err != nil {
			return s
		}
	}
	p.property(&s)
	for range s.calls {
		p.want(")")
	}
	if p.skip(); p.err == nil && p.at < len(p.text) {
		p.fail(p.at, "want the end, got %s", p.shown(p.at))
	}
	return s
}

func (p *expressionParser) property(s *syntax) {
	p.want("[")
	s.names = p.names()
	s.all = len(s.names) == 1 && s.names[0] == "*"
	if !p.has(".") {
		return
	}
	s.part = partPlayers
	p.wantWord("players")
	switch {
	case p.has("["):
		s.part = partIDs
		at := p.skip()
		if name := p.name(); !strings.EqualFold(name, "playerId") {
			p.fail(at, "want playerId, got %s", quoted(name))
		}
		p.want("]")
	case p.has("."):
		s.part = partAttribute
		p.wantWord("attributes")
		p.want("[")
		names := p.names()
		if len(names) != 1 {
			p.fail(p.at, "want the name of one attribute, got %d names", len(names))
			return
		}
		s.attribute = names[0]
	}
}

// names reads names up to the closing bracket.
func (p *expressionParser) names() (names []string) {
	for p.err == nil {
		at := p.skip()
		name := p.name()
		if name == "" {
			p.fail(at, "want a name, got %s", p.shown(at))
			return names
		}
		names = append(names, name)
		if !p.has(",") {
			p.want("]")
			return names
		}
	}
	return names
}

// name reads to the next bracket or comma.
func (p *expressionParser) name() string {
	end := strings.IndexAny(p.text[p.at:], "[],")
	if end < 0 {
		end = len(p.text) - p.at
	}
	name := p.text[p.at : p.at+end]
	p.at += end
	return strings.TrimSpace(name)
}

func (p *expressionParser) word() string {
	start := p.at
	for p.at < len(p.text) && (p.text[p.at] == '_' || 'a' <= p.text[p.at] && p.text[p.at] <= 'z') {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *expressionParser) wantWord(want string) {
	at := p.skip()
	if word := p.word(); word != want {
		p.fail(at, "want %s, got %s", want, p.shown(at))
	}
}

// skip skips blanks and returns the new position.
func (p *expressionParser) skip() int {
	p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], " \t\r\n"))
	return p.at
}

func (p *expressionParser) has(token string) bool {
	p.skip()
	if p.err != nil || !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *expressionParser) want(token string) {
	if p.err == nil && !p.has(token) {
		p.fail(p.at, "want '%s', got %s", token, p.shown(p.at))
	}
}

func (p *expressionParser) fail(at int, format string, args ...any) {
	if p.err == nil {
		text := fmt.Sprintf(format, args...)
		p.err = &expressionSyntax{at, fmt.Sprintf("at character %d %s", utf8.RuneCountInString(p.text[:at])+1, text)}
	}
}

func (p *expressionParser) shown(at int) string {
	if at >= len(p.text) {
		return "the end"
	}
	return quoted(p.text[at:])
}
