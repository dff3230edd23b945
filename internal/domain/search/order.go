package search

import (
	"cmp"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

// Order is the order of a search's results. Without an Attribute the order is as good as random: that of the game
// sessions' marks on a ring, from Start on, so that clients who ask with different Starts meet different sessions first.
type Order struct {
	Attribute  Attribute
	Key        string // of a Property
	Descending bool
	Start      uint64
}

// ParseOrder reads an order. An error is a *SyntaxError.
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

// Place is where a game session stands in an order. What has no value stands last, whatever the direction; equals stand
// in the order of their creation, and then of their ids.
type Place struct {
	None    bool // the game session lacks the attribute
	Number  int64
	Text    string // as OrderText gives it
	Created int64
	ID      string
}

// PlaceOf gives the place of a game session.
func (o Order) PlaceOf(r Row) Place {
	p := Place{Created: r.Created, ID: r.ID}
	switch o.Attribute {
	case None:
		p.Number = int64(Mark(r.ID) - o.Start) // compared without sign
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

// Compare is negative when a stands before b.
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

// orderTextMax is how many bytes of a text decide about its order: all of a game property, whose values have 96
// characters, but not of each name. It lets a place fit in a page token, which has 1024 characters.
const orderTextMax = 4 * 96

// OrderText gives what of a text decides about its order: the text itself, or when it is very long its beginning and a
// digest of the rest.
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

// Mark is a game session's fixed place on the ring of the order that is as good as random.
func Mark(id string) uint64 {
	x := uint64(14695981039346656037) // FNV-1a, and then the finaliser of splitmix64 for the low bits' sake
	for i := range len(id) {
		x = (x ^ uint64(id[i])) * 1099511628211
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
