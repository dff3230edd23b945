package machinerole

import "testing"

func TestSubjectPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"repo:studio/game:*", "repo:studio/game:ref:refs/heads/main", true},
		{"repo:studio/game:*", "repo:studio/game:", true},
		{"repo:studio/game:*", "repo:studio/game-evil:ref:refs/heads/main", false},
		{"repo:studio/game:*", "repo:studio/game", false},
		{"repo:studio/game:*", " repo:studio/game:x", false},
		{"repo:studio/*:ref:refs/heads/main", "repo:studio/game:ref:refs/heads/main", true},
		{"repo:studio/*:ref:refs/heads/main", "repo:studio/game:ref:refs/heads/main2", false},
		{"ab*ba", "aba", false},
		{"ab*ba", "abba", true},
		{"a*b*c", "a-c-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"a**c", "abc", true},
		{"a?c", "abc", false},
		{"a.c", "abc", false},
		{"exact", "exact", true},
		{"exact", "exactly", false},
		{"Exact", "exact", false},
	} {
		if got := like(c.text, c.pattern); got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.text, got)
		}
	}
}
