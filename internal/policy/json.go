package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// depthMax bounds the nesting of a document: document, statements, conditions, operator, values, and one spare level.
const depthMax = 8

// node is a value of a document.
type node struct {
	at   string // its path: Statement[1].Action
	name string // as a member
	kind jsontext.Kind

	text    string  // of a string, or a number
	members []*node // of an object
	items   []*node // of a list
}

// readJSON reads one value. It refuses objects with duplicate names.
func readJSON(document string) (*node, error) {
	d := jsontext.NewDecoder(strings.NewReader(document))
	root, err := readNode(d, "", "")
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, &Mistake{Text: fmt.Sprintf("byte %d: want nothing after the document", d.InputOffset()), byte: d.InputOffset()}
	}
	return root, nil
}

func readNode(d *jsontext.Decoder, at, name string) (*node, error) {
	return readNodeSeen(d, at, name, func(string, int) {})
}

// readNodeSeen is readNode that reports where each value begins.
func readNodeSeen(d *jsontext.Decoder, at, name string, seen func(at string, offset int)) (*node, error) {
	seen(at, int(d.InputOffset()))
	token, err := d.ReadToken()
	if err != nil {
		return nil, problemOf(err)
	}
	n := &node{at: at, name: name, kind: token.Kind()}
	switch {
	case d.StackDepth() > depthMax:
		return nil, mistake(at, "it is nested more than %d deep", depthMax)
	case n.kind == '"' || n.kind == '0':
		n.text = token.String()
	case n.kind == '{':
		err = n.readMembers(d, seen)
	case n.kind == '[':
		for i := 0; err == nil && d.PeekKind() != ']'; i++ {
			var item *node
			if item, err = readNodeSeen(d, fmt.Sprintf("%s[%d]", at, i), "", seen); err == nil {
				n.items = append(n.items, item)
			}
		}
	}
	if err == nil && (n.kind == '{' || n.kind == '[') {
		if _, end := d.ReadToken(); end != nil {
			err = problemOf(end)
		}
	}
	return n, err
}

func (n *node) readMembers(d *jsontext.Decoder, seen func(at string, offset int)) error {
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return problemOf(err)
		}
		name := token.String()
		at := excerpt.Short(name)
		if n.at != "" {
			at = n.at + "." + at
		}
		m, err := readNodeSeen(d, at, name, seen)
		if err != nil {
			return err
		}
		n.members = append(n.members, m)
	}
	return nil
}

func (n *node) member(name string) (*node, bool) {
	for _, m := range n.members {
		if m.name == name {
			return m, true
		}
	}
	return nil, false
}

// known refuses an object with members other than these.
func (n *node) known(names ...string) error {
members:
	for _, m := range n.members {
		for _, name := range names {
			if m.name == name {
				continue members
			}
		}
		return mistake(m.at, "%q is unknown%s", excerpt.Short(m.name), meant(m.name, names))
	}
	return nil
}

// strings returns a single string, or the elements of a non-empty list of strings.
func (n *node) strings() ([]*node, error) {
	switch {
	case n.kind == '"':
		return []*node{n}, nil
	case n.kind != '[' || len(n.items) == 0:
		return nil, mistake(n.at, "got %s, want a string, or a list of strings", n.shown())
	}
	for _, item := range n.items {
		if item.kind != '"' {
			return nil, mistake(item.at, "got %s, want a string", item.shown())
		}
	}
	return n.items, nil
}

// shown returns the value for an error message.
func (n *node) shown() string {
	switch n.kind {
	case '"':
		return fmt.Sprintf("%q", excerpt.Short(n.text))
	case '0':
		return excerpt.Short(n.text)
	case '{':
		return "an object"
	case '[':
		if len(n.items) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	return n.kind.String()
}
