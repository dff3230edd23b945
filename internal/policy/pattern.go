package policy

import "strings"

// arnParts is how many parts an ARN has: arn, partition, service, region, account, resource.
const arnParts = 6

// pattern matches ARNs part by part, so that a wildcard does not reach beyond a colon into the next part. The last part is the rest.
type pattern struct {
	any   bool // "*" alone: every resource, and actions that name none
	parts [arnParts]string
}

func (p *pattern) match(arn string) bool {
	if p.any {
		return true
	}
	for i := range arnParts - 1 {
		part, rest, ok := strings.Cut(arn, ":")
		if !ok || !like(part, p.parts[i]) {
			return false
		}
		arn = rest
	}
	return like(arn, p.parts[arnParts-1])
}

// like reports whether text matches a pattern, in which * stands for any number of bytes and ? for one character. It takes at most
// the product of both lengths.
func like(text, pattern string) bool {
	star, mark := -1, 0 // the last *, and where in text the part behind it was tried
	t, p := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == '?':
			t += characterLength(text[t:])
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			t++
			p++
		case star >= 0:
			mark++
			t, p = mark, star+1
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func characterLength(text string) int {
	for i := range text {
		if i > 0 {
			return i
		}
	}
	return len(text)
}
