package search

import (
	"math"
	"strings"
)

// Op is the operation of a Node.
type Op uint8

// The operations.
const (
	And     Op = iota + 1 // all Kids
	Or                    // any of Kids
	Not                   // not Kids[0]
	Between               // the number of Attribute is in Low..High
	Is                    // the text of Attribute is Text; false when it has none
	IsNot                 // it has another text; false when it has none
	IsGame                // it is the game session that Game names
	IsTruth               // hasAvailablePlayerSessions is Truth
)

// Node is one operation of a filter. Comparisons of numbers are intervals: all attributes are whole numbers, but a filter may compare
// them with fractions and with numbers of a thousand digits.
type Node struct {
	Op        Op
	Kids      []*Node
	Attribute Attribute
	Key       string // of a Property
	Low, High int64
	Text      string
	Game      Game
	Truth     bool
}

// Filter selects game sessions. The zero Filter selects all.
type Filter struct {
	Root  *Node // nil: all
	Terms int   // comparisons in it
}

// depthMax is the deepest nesting of parentheses and NOT.
const depthMax = 64

// ParseFilter parses a filter. An error is a *SyntaxError.
func ParseFilter(text string) (Filter, error) {
	l, err := newLexer(text)
	if err != nil {
		return Filter{}, err
	}
	p := parser{lexer: l}
	p.advance()
	root, err := p.or(0)
	if err == nil && p.now.kind != endToken {
		err = p.wrong("AND, OR or the end")
	}
	if err != nil {
		return Filter{}, err
	}
	return Filter{Root: root, Terms: p.terms}, nil
}

type parser struct {
	lexer
	now   token
	terms int
}

func (p *parser) advance() { p.now = p.lexer.next() }

// wrong returns the error at the current token.
func (p *parser) wrong(want string) error {
	if p.now.want != "" {
		want = p.now.want
	}
	return &SyntaxError{p.now.at, shown(p.now.text), want}
}

func (p *parser) keyword(word string) bool {
	return p.now.kind == wordToken && strings.EqualFold(p.now.text, word)
}

func (p *parser) or(depth int) (*Node, error)  { return p.chain(Or, "OR", depth, p.and) }
func (p *parser) and(depth int) (*Node, error) { return p.chain(And, "AND", depth, p.not) }

// chain reads one or more operands with the same keyword between them.
func (p *parser) chain(op Op, keyword string, depth int, operand func(int) (*Node, error)) (*Node, error) {
	first, err := operand(depth)
	if err != nil || !p.keyword(keyword) {
		return first, err
	}
	n := &Node{Op: op, Kids: []*Node{first}}
	for p.keyword(keyword) {
		p.advance()
		kid, err := operand(depth)
		if err != nil {
			return nil, err
		}
		n.Kids = append(n.Kids, kid)
	}
	return n, nil
}

func (p *parser) not(depth int) (*Node, error) {
	negated := p.keyword("NOT")
	switch {
	case depth == depthMax && (negated || p.now.kind == openToken):
		return nil, p.wrong("at most 64 parentheses and NOT inside each other")
	case negated:
		p.advance()
		kid, err := p.not(depth + 1)
		return &Node{Op: Not, Kids: []*Node{kid}}, err
	case p.now.kind == openToken:
		p.advance()
		inner, err := p.or(depth + 1)
		if err == nil && p.now.kind != closeToken {
			err = p.wrong("AND, OR or a closing parenthesis")
		}
		p.advance()
		return inner, err
	default:
		return p.comparison()
	}
}

func (p *parser) comparison() (*Node, error) {
	if p.now.kind != wordToken || p.keyword("AND") || p.keyword("OR") {
		return nil, p.wrong("an attribute, NOT or an opening parenthesis")
	}
	o, problem := readOperand(p.now.text)
	if problem != "" {
		return nil, p.wrong(problem)
	}
	p.advance()
	comparator := p.now.text
	switch {
	case p.now.kind != comparatorToken:
		return nil, p.wrong("one of = <> < > <= >=")
	case o.attribute.kind() != numberKind && comparator != "=" && comparator != "<>":
		return nil, p.wrong("= or <>, the only comparisons of " + o.written)
	}
	p.advance()
	n, err := p.literal(o, comparator)
	if err != nil {
		return nil, err
	}
	p.advance()
	p.terms++
	return n, nil
}

func (p *parser) literal(o operand, comparator string) (*Node, error) {
	equal := comparator == "="
	switch o.attribute.kind() {
	case numberKind:
		if p.now.kind != numberToken {
			return nil, p.wrong("a number, as " + o.written + " is one")
		}
		return numberNode(o, comparator, p.now.text), nil
	case truthKind:
		if !p.keyword("true") && !p.keyword("false") {
			return nil, p.wrong("true or false, as " + o.written + " is one of them")
		}
		return &Node{Op: IsTruth, Attribute: o.attribute, Truth: p.keyword("true") == equal}, nil
	default:
		if p.now.kind != stringToken {
			return nil, p.wrong("a string in single quotes, as " + o.written + " is a string")
		}
	}
	n := &Node{Op: Is, Attribute: o.attribute, Key: o.key, Text: p.now.value}
	if o.attribute == GameSessionID {
		n.Op, n.Text, n.Game = IsGame, "", parseGame(p.now.value)
		if !equal { // every game session has an id, so this equals IsNot
			return &Node{Op: Not, Kids: []*Node{n}}, nil
		}
		return n, nil
	}
	if !equal {
		n.Op = IsNot
	}
	return n, nil
}

// numberNode converts a comparison with a number to an interval.
func numberNode(o operand, comparator, number string) *Node {
	floor, ceiling := wholeNumbers(number)
	n := &Node{Op: Between, Attribute: o.attribute, Low: math.MinInt64, High: math.MaxInt64}
	switch comparator {
	case "<":
		n.High = ceiling - 1
	case "<=":
		n.High = floor
	case ">":
		n.Low = floor + 1
	case ">=":
		n.Low = ceiling
	default: // equal to a whole number; a fraction equals none
		n.Low, n.High = ceiling, floor
		if comparator == "<>" {
			return &Node{Op: Not, Kids: []*Node{n}}
		}
	}
	return n
}

// numberLimit is greater than every value of an attribute, and adding 1 to it does not overflow.
const numberLimit = 1 << 61

// wholeNumbers returns the whole numbers below and above a decimal number, or twice the number if it is whole.
func wholeNumbers(number string) (floor, ceiling int64) {
	number, negative := strings.CutPrefix(number, "-")
	whole, fraction, _ := strings.Cut(number, ".")
	for _, c := range []byte(whole) {
		if floor = floor*10 + int64(c-'0'); floor > numberLimit/10 {
			floor = numberLimit / 10
			break
		}
	}
	ceiling = floor
	if strings.Trim(fraction, "0") != "" {
		ceiling++
	}
	if negative {
		return -ceiling, -floor
	}
	return floor, ceiling
}
