package ruleset

import (
	"cmp"
	"slices"
)

// Problem is an error in a rule set.
type Problem struct {
	Path    string // "rules[Near].maxDistance"; empty for the body as a whole
	Message string // with the value and what is expected
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// problemsMax is the most problems that are reported.
const problemsMax = 20

// located is a problem with its position in the document.
type located struct {
	at int
	Problem
}

// inOrder sorts problems by position, removes duplicates, and keeps the first max.
func inOrder(all []located, max int) []Problem {
	slices.SortStableFunc(all, func(a, b located) int { return cmp.Compare(a.at, b.at) })
	seen := make(map[Problem]bool)
	var problems []Problem
	for _, l := range all {
		if len(problems) == max {
			break
		}
		if !seen[l.Problem] {
			seen[l.Problem] = true
			problems = append(problems, l.Problem)
		}
	}
	return problems
}
