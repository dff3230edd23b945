package gamelift

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern matches whole strings against a pattern of the model. The model's patterns are unanchored; without anchors,
// "custom-a b" would match ^custom-[A-Za-z0-9\-]+.
type pattern struct {
	source string
	match  func(string) bool
}

// The model's patterns use JavaScript syntax: \uXXXX, and surrogate pairs for characters beyond U+FFFF.
var fromJavaScript = strings.NewReplacer(`\uD800\uDC00-\uDBFF\uDFFF`, `\x{10000}-\x{10FFFF}`)

var unicodeEscape = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

func compilePattern(source string) (*pattern, error) {
	translated := unicodeEscape.ReplaceAllString(fromJavaScript.Replace(source), `\x{$1}`)
	// (?s): a name that spans lines matches .*\S.* as well.
	whole := `(?s)\A(?:` + translated + `)\z`
	compiled, err := regexp.Compile(whole)
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", source, err)
	}
	p := &pattern{source: source, match: compiled.MatchString}
	if class, ok := asciiClass(translated); ok {
		p.match = class.match
	}
	return p, nil
}

// classPattern is the most common pattern, a literal followed by one or more characters of a set. Matching without the
// regexp engine costs a nanosecond per character instead of twenty.
type classPattern struct {
	literal string
	min     int // of the characters after the literal
	set     [128]bool
}

func (c *classPattern) match(s string) bool {
	rest, ok := strings.CutPrefix(s, c.literal)
	if !ok || len(rest) < c.min {
		return false
	}
	for i := range len(rest) {
		if rest[i] >= 128 || !c.set[rest[i]] {
			return false
		}
	}
	return true
}

// asciiClass returns the fast form of a pattern, if it has one.
func asciiClass(source string) (*classPattern, bool) {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, false
	}
	parsed = parsed.Simplify()
	parts := []*syntax.Regexp{parsed}
	if parsed.Op == syntax.OpConcat {
		parts = parsed.Sub
	}
	class := new(classPattern)
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part.Op == syntax.OpBeginText && i == 0:
		case part.Op == syntax.OpEndText && last && i > 0 && parts[i-1].Op != syntax.OpLiteral:
		case part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 && !last && class.literal == "":
			class.literal = string(part.Rune)
		case (part.Op == syntax.OpPlus || part.Op == syntax.OpStar) && class.fill(part.Sub[0]):
			if part.Op == syntax.OpPlus {
				class.min = 1
			}
			if !last && (i != len(parts)-2 || parts[i+1].Op != syntax.OpEndText) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return class, true
}

// fill copies a character class, if it contains only ASCII.
func (c *classPattern) fill(class *syntax.Regexp) bool {
	if class.Op != syntax.OpCharClass {
		return false
	}
	for i := 0; i < len(class.Rune); i += 2 {
		low, high := class.Rune[i], class.Rune[i+1]
		if high >= 128 {
			return false
		}
		for r := low; r <= high; r++ {
			c.set[r] = true
		}
	}
	return true
}
