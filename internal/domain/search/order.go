package search

import (
	"cmp"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

// Order is the order of a search's results. Without an Attribute the order is pseudo-random: that of the game sessions' marks on a ring,
// from Start on, so that clients with different Starts get different game sessions first.
type Order struct {
	Attribute  Attribute
	Key        string // of a Property
	Descending bool
	Start      uint64
}

// ParseOrder parses an order. An error is a *SyntaxError.
func ParseOrder(text string) (Order, error) {
	l, err := newLexer(text)
	if err != nil {
		return Order{}, err
	}
	p := parser{lexer: l}
	p.advance()
	if p.now.kind != wordToken {
		return Order{}, p.wrong(wantAttribute)
	}
	o, problem := readOperand(p.now.text)
	if problem != "" {
		return Order{}, p.wrong(problem)
	}
	order := Order{Attribute: o.attribute, Key: o.key}
	p.advance()
	switch {
	case p.keyword("ASC"):
		p.advance()
	case p.keyword("DESC"):
		order.Descending = true
		p.advance()
	case p.now.kind != endToken:
		return Order{}, p.wrong("ASC or DESC")
	}
	if p.now.kind != endToken {
		return Order{}, p.wrong("the end: there is one attribute to sort by")
	}
	return order, nil
}

// Place is the position of a game session in an order. Game sessions without a value come last, whatever the direction; equal ones are
// ordered by creation and then by id.
type Place struct {
	None    bool // the game session lacks the attribute
	Number  int64
	Text    string // as OrderText gives it
	Created int64
	ID      string
}

// PlaceOf returns the place of a game session.
func (o Order) PlaceOf(r Row) Place {
	p := Place{Created: r.Created, ID: r.ID}
	switch o.Attribute {
	case None:
		p.Number = int64(Mark(r.ID) - o.Start) // compared as unsigned
	case GameSessionID:
	case GameSessionName:
		p.Text, p.None = OrderText(r.Name), r.Name == ""
	case Property:
		text, ok := r.Property(o.Key)
		p.Text, p.None = OrderText(text), !ok
	default:
		p.Number = r.number(o.Attribute)
	}
	return p
}

// Compare is negative if a comes before b.
func (o Order) Compare(a, b Place) int {
	if a.None != b.None {
		if a.None {
			return 1
		}
		return -1
	}
	var n int
	switch {
	case o.Attribute == None:
		n = cmp.Compare(uint64(a.Number), uint64(b.Number))
	case o.Attribute == GameSessionID:
		n = strings.Compare(a.ID, b.ID)
	default:
		n = cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Text, b.Text))
	}
	if o.Descending {
		n = -n
	}
	return cmp.Or(n, cmp.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
}

// orderTextMax is the most bytes of a text that determine its order, so that a place fits into a page token of 1024 characters. It covers
// every value of a game property, which has at most 96 characters, but not every name.
const orderTextMax = 4 * 96

// OrderText returns the part of a text that determines its order: the text itself, or for a very long one its beginning and a digest of
// the rest.
func OrderText(s string) string {
	if len(s) <= orderTextMax {
		return s
	}
	cut := orderTextMax
	for !utf8.RuneStart(s[cut]) && cut > orderTextMax-utf8.UTFMax {
		cut--
	}
	h := fnv.New64a()
	h.Write([]byte(s[cut:]))
	return string(h.Sum([]byte(s[:cut])))
}

// Mark returns a game session's fixed place on the ring of the pseudo-random order.
func Mark(id string) uint64 {
	x := uint64(14695981039346656037) // FNV-1a, then the finaliser of splitmix64 to mix the low bits
	for i := range len(id) {
		x = (x ^ uint64(id[i])) * 1099511628211
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
