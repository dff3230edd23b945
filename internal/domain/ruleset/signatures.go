package ruleset

// Problem is one thing wrong with a rule set.
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

// Parse reads a rule set. It returns either the rule set or all that is wrong with it, at most 20 problems, in the
// order of the document.
func Parse(body string) (*RuleSet, []Problem) { panic("being written") }

// Warnings lists what a valid rule set says in vain: unknown properties, properties that its type of rule has no use for.
func Warnings(body string) []Problem { panic("being written") }

// Player returns a player's values, one for each declared attribute: as sent, else its default, else of kind None, and
// then the player's ticket matches with nobody. Attributes that are not declared are passed over. The error is an
// *AttributeError.
func (rs *RuleSet) Player(sent []NamedValue) (values []Value, err error) { panic("being written") }

// Evaluate returns what each of Rules says of a complete candidate. Sort rules always hold.
func (l *Level) Evaluate(c *Candidate) []Verdict { panic("being written") }

// Accepts reports whether the candidate is legal at this level as far as rules and team sizes go: no player misses a
// value, every team's size is within its bounds, and every rule that is not replaced holds.
func (l *Level) Accepts(c *Candidate) bool { panic("being written") }

// Hopeless reports whether a rule rejects the candidate and whatever could be made of it by adding tickets, at this level.
func (l *Level) Hopeless(c *Candidate) (rule int, yes bool) { panic("being written") }

// AtMost reports whether x is not above the bound, as all rules' bounds are checked.
func AtMost(x, bound float64) bool { panic("being written") }

// AtLeast reports whether x is not below the bound.
func AtLeast(x, bound float64) bool { panic("being written") }
