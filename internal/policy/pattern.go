package policy

import "strings"

// arnParts is the number of parts of an ARN: arn, partition, service, region, account, resource.
const arnParts = 6

// pattern matches ARNs part by part, so that a wildcard does not extend beyond a colon. The last part is the remainder.
type pattern struct {
	any   bool // "*" alone: every resource, and actions without a resource
	parts [arnParts]partPattern
}

// partPattern matches a part of an ARN. Most have no wildcard, or one at the end.
type partPattern struct {
	form partForm
	text string // before the wildcard of a beginning
}

type partForm uint8

const (
	exactly   partForm = iota
	beginning          // one *, at the end
	alike              // other wildcards
)

func newPartPattern(text string) partPattern {
	switch at := strings.IndexAny(text, "*?"); {
	case at < 0:
		return partPattern{exactly, text}
	case at == len(text)-1 && text[at] == '*':
		return partPattern{beginning, text[:at]}
	}
	return partPattern{alike, text}
}

func (p *partPattern) match(part string) bool {
	switch p.form {
	case exactly:
		return part == p.text
	case beginning:
		return strings.HasPrefix(part, p.text)
	}
	return like(part, p.text)
}

// splitARN returns the parts of an ARN. The last part may contain colons.
func splitARN(arn string) (parts [arnParts]string, ok bool) {
	for i := range arnParts - 1 {
		if parts[i], arn, ok = strings.Cut(arn, ":"); !ok {
			return parts, false
		}
	}
	parts[arnParts-1] = arn
	return parts, true
}

// match matches an ARN given in parts; nil if the resource is not an ARN.
func (p *pattern) match(arn *[arnParts]string) bool {
	if p.any || arn == nil {
		return p.any
	}
	for i := arnParts - 1; i >= 0; i-- { // the last part is the most likely to differ
		if !p.parts[i].match(arn[i]) {
			return false
		}
	}
	return true
}

// like reports whether text matches a pattern, in which * stands for any number of bytes and ? for one character. Its running time
// is at most proportional to the product of both lengths.
func like(text, pattern string) bool {
	star, mark := -1, 0 // the last *, and the position in text at which the rest of the pattern was tried
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
