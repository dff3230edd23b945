package gamelift

import (
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/gamelift/model"
)

func TestPatternsHoldForTheWholeString(t *testing.T) {
	for _, each := range []struct {
		pattern string
		fits    []string
		not     []string
	}{
		{`^custom-[A-Za-z0-9\-]+`, []string{"custom-a", "custom-A-9"}, []string{"custom-", "custom-a b", "xcustom-a", "custom-ä", ""}},
		{`[a-zA-Z0-9:/-]+`, []string{"arn:aws:gamelift:eu::gamesession/fleet-1/x"}, []string{"", "a b", "a\n"}},
		{`[a-zA-Z0-9-\.]*`, []string{"", "a-.9"}, []string{"a_"}},
		{`^[a-z]*fleet-[a-zA-Z0-9\-]+$|^arn:.*:[a-z]*fleet\/[a-z]*fleet-[a-zA-Z0-9\-]+$`,
			[]string{"fleet-1", "containerfleet-1", "arn:aws:gamelift:eu-central-1:1:fleet/fleet-1"}, []string{"fleet-1 ", "arn:fleet-1", "fleet-"}},
		{`.*\S.*`, []string{"x", " x ", "two\nlines"}, []string{"", "  ", "\n"}},
		{`[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]+`, []string{"a ä 😀\n"}, []string{"\x01", ""}},
		{`^[\u0031-\u0039][\u0030-\u0039]{0,2}$`, []string{"1", "999"}, []string{"0", "1000"}},
		{`^psess-\S+`, []string{"psess-x"}, []string{"psess-", "psess-a b"}},
	} {
		p, err := compilePattern(each.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range each.fits {
			if !p.match(s) {
				t.Errorf("%s refuses %q", each.pattern, s)
			}
		}
		for _, s := range each.not {
			if p.match(s) {
				t.Errorf("%s takes %q", each.pattern, s)
			}
		}
	}
}

// The fast form must decide as the regexp engine does.
func FuzzFastPatterns(f *testing.F) {
	type pair struct {
		fast *classPattern
		slow *regexp.Regexp
	}
	var pairs []pair
	for _, shape := range model.Load().Shapes {
		if shape.Pattern == "" || strings.Contains(shape.Pattern, `\u`) {
			continue
		}
		if fast, ok := asciiClass(shape.Pattern); ok {
			pairs = append(pairs, pair{fast, regexp.MustCompile(`\A(?:` + shape.Pattern + `)\z`)})
		}
	}
	if len(pairs) < 10 {
		f.Fatalf("only %d patterns of the model have a fast form", len(pairs))
	}
	for _, seed := range []string{"", "custom-a", "custom-", "arn:aws:x/y", "i-\n", "ä", "a_b", "\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range pairs {
			if got, want := p.fast.match(s), p.slow.MatchString(s); got != want {
				t.Errorf("%s and %q: fast says %t, slow %t", p.slow, s, got, want)
			}
		}
	})
}
