// Package policy implements the rules that operators write: which actions an access key may take, on which resources, and from where. The
// language is a subset of AWS IAM's: docs/guide/policies.md. A document is parsed strictly once and compiled; evaluating it does not
// allocate.
package policy

// Bounds of a document. DocumentMax bounds its text in bytes, and thereby everything in it.
const (
	DocumentMax   = 10 << 10
	StatementsMax = 32
)

// Policy is a compiled document.
type Policy struct {
	statements []statement
}

// statement grants or denies some actions on some resources under all its conditions.
type statement struct {
	sid        string // may be empty
	deny       bool
	actions    actionSet
	resources  []pattern
	conditions []condition
}

// actionSet has a bit for each Action.
type actionSet [(len(actionNames) + 63) / 64]uint64

func (s *actionSet) add(a Action)      { s[a/64] |= 1 << (a % 64) }
func (s *actionSet) has(a Action) bool { return s[a/64]&(1<<(a%64)) != 0 }

func (s *actionSet) complement() {
	for a := range Action(len(actionNames)) {
		s[a/64] ^= 1 << (a % 64)
	}
}
