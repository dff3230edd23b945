package ruleset

import "unicode/utf8"

// bodyMax is the longest body, in characters.
const bodyMax = 65_535

// Small and large matches have different limits.
const (
	smallMax = 40
	largeMax = 200
)

// Parse returns either a rule set or its problems, at most 20, in the order of the document.
func Parse(body string) (*RuleSet, []Problem) {
	r := read(body)
	if len(r.problems) > 0 {
		return nil, inOrder(r.problems, problemsMax)
	}
	return r.set, nil
}

// Warnings lists the properties of a valid rule set that have no effect: unknown ones, and those that its type of rule does not use. The
// service ignores them as documented, but they are often mistakes.
func Warnings(body string) []Problem {
	r := read(body)
	if len(r.problems) > 0 {
		return nil
	}
	return inOrder(r.warnings, len(r.warnings))
}

// reader builds a rule set, part by part, and collects its problems.
type reader struct {
	text     string // the body
	root     object
	set      *RuleSet
	problems []located
	warnings []located

	names       names
	definitions []definition
	sum         int64 // of each team's largest maxPlayers times its quantity
	ruleNodes   []*ruleNode
	ruleByName  map[string]int
	replaced    []bool

	expressions  map[string]resolved  // by text, because steps of expansions repeat them
	measurements map[*node][]measured // by node, for the same reason
}

func read(body string) *reader {
	r := &reader{
		text: body, set: &RuleSet{}, ruleByName: map[string]int{},
		expressions: map[string]resolved{}, measurements: map[*node][]measured{},
	}
	switch {
	case len(body) > bodyMax*utf8.UTFMax || utf8.RuneCountInString(body) > bodyMax:
		r.fail(0, "", "the body has %d characters, want at most %d", utf8.RuneCountInString(body), bodyMax)
		return r
	case !utf8.ValidString(body):
		at := 0
		for i, c := range body {
			if c == utf8.RuneError {
				at = i
				break
			}
		}
		r.fail(at, "", "%s: the body is not UTF-8", position(body, at))
		return r
	}
	root, err := parseJSON(body)
	switch {
	case err != nil:
		r.fail(err.at, "", "%s: %s", position(body, err.at), err.text)
	case root.kind != jsonObject:
		r.fail(root.at, "", "%s: got %s, want an object", position(body, root.at), jsonNames[root.kind])
	default:
		r.root = object{r: r, n: root}
		r.body(r.root)
	}
	return r
}

func (r *reader) body(o object) {
	o.known("name", "ruleLanguageVersion", "playerAttributes", "algorithm", "teams", "rules", "expansions")
	if n, ok := o.has("name"); ok && n.kind != jsonString {
		o.fail("name", "got %s, want a string", n.shown())
	} else if ok {
		r.set.Name = n.text
	}
	switch n, ok := o.has("ruleLanguageVersion"); {
	case !ok:
		o.fail("ruleLanguageVersion", `it is missing, want "1.0"`)
	case n.kind != jsonString || n.text != "1.0":
		o.fail("ruleLanguageVersion", `got %s, want "1.0"`, n.shown())
	}
	r.readAttributes(o)
	r.readTeams(o)
	r.readRuleHeads(o)
	changes := r.readExpansions(o) // before the rules, because the largest maxPlayers decides which rules are allowed
	r.decideSize(o)
	r.readAlgorithm(o)
	r.readRules()
	r.buildLevels(changes)
}

func (r *reader) large() bool { return r.sum > smallMax && r.sum <= largeMax }
