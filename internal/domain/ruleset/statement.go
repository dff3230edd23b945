package ruleset

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// nestingMax is the deepest nesting of a compound rule's statement.
const nestingMax = 64

var logics = map[string]Logic{"and": LogicAnd, "or": LogicOr, "xor": LogicXor, "not": LogicNot}

// statement reads the logic of a compound rule, which replaces its parts.
func (r *reader) statement(rule int, o object) *Statement {
	text, ok := o.text("statement")
	if !ok {
		return nil
	}
	p := statementParser{r: r, o: o, rule: rule, text: text}
	s := p.statement(0)
	if p.blanks(); p.err == "" && p.at < len(text) {
		p.fail("want the end, got %s", quoted(text[p.at:]))
	}
	if p.err != "" {
		o.fail("statement", "%s", p.err)
		return nil
	}
	return s
}

type statementParser struct {
	r    *reader
	o    object
	rule int
	text string
	at   int
	err  string
}

func (p *statementParser) fail(format string, args ...any) {
	if p.err == "" {
		p.err = fmt.Sprintf("at character %d ", utf8.RuneCountInString(p.text[:p.at])+1) + fmt.Sprintf(format, args...)
	}
}

func (p *statementParser) blanks() {
	p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], " \t\r\n"))
}

// statement = rule-name | word "(" statement { "," statement } ")"
func (p *statementParser) statement(depth int) *Statement {
	p.blanks()
	start := p.at
	end := strings.IndexAny(p.text[start:], "(),")
	if end < 0 {
		end = len(p.text) - start
	}
	word := strings.TrimSpace(p.text[start : start+end])
	p.at = start + end
	if p.at == len(p.text) || p.text[p.at] != '(' {
		return p.part(start, word)
	}
	logic, ok := logics[word]
	switch {
	case !ok:
		p.at = start
		p.fail("want and, or, xor or not before '(', got %s", quoted(word))
		return nil
	case depth == nestingMax:
		p.fail("the statement nests deeper than %d", nestingMax)
		return nil
	}
	s := &Statement{Logic: logic}
	for first := true; p.err == "" && (first || p.text[p.at] == ','); first = false {
		p.at++ // '(' or ','
		s.Of = append(s.Of, p.statement(depth+1))
		if p.blanks(); p.err == "" && (p.at == len(p.text) || p.text[p.at] != ',' && p.text[p.at] != ')') {
			p.fail("want ',' or ')'")
		}
	}
	if p.err != "" {
		return nil
	}
	p.at++ // ')'
	switch {
	case logic == LogicNot && len(s.Of) != 1:
		p.fail("not takes one rule, got %d", len(s.Of))
	case logic != LogicNot && len(s.Of) < 2:
		p.fail("%s takes two rules or more, got %d", word, len(s.Of))
	}
	return s
}

// part looks up a rule that the statement names.
func (p *statementParser) part(start int, name string) *Statement {
	end := p.at
	p.at = start
	part, known := p.r.ruleByName[name]
	switch {
	case name == "":
		p.fail("want the name of a rule")
	case !known:
		p.fail("the rule %s is unknown", quoted(name))
	case part >= p.rule:
		p.fail("the rule %s must come before this one", quoted(name))
	default:
		switch kind := p.r.ruleNodes[part].kind; kind {
		case batchDistanceType, absoluteSortType, distanceSortType:
			p.fail("the rule %s is of type %s, which cannot be part of a compound rule", quoted(name), kind)
		default:
			p.r.replaced[part] = true
		}
	}
	p.at = end
	return &Statement{Logic: LogicRule, Rule: part}
}
