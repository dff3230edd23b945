package policy

import (
	"net/netip"
	"slices"

	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// operator compares the value of a request with those of a condition.
type operator struct {
	name    string
	negated bool
	address bool // its values are addresses, and its key is aws:SourceIp
	like    bool // its values have wildcards
}

var operators = []operator{
	{name: "StringEquals"},
	{name: "StringNotEquals", negated: true},
	{name: "StringLike", like: true},
	{name: "StringNotLike", like: true, negated: true},
	{name: "IpAddress", address: true},
	{name: "NotIpAddress", address: true, negated: true},
}

// subject is the property of a request that a condition tests.
type subject uint8

const (
	sourceAddress subject = iota + 1
	resourceTag
	requestTag
)

// The keys of conditions. Those of tags end with the tag's key.
const (
	keySourceIP    = "aws:SourceIp"
	keyResourceTag = "aws:ResourceTag/"
	keyRequestTag  = "aws:RequestTag/"
)

// condition holds or does not hold for a request.
type condition struct {
	operator
	of        subject
	tag       string
	values    []string
	addresses []netip.Prefix
}

// holds compares as IAM does: one matching value suffices; with a negated operator, no value may match; and a property that the request lacks matches
// no value.
func (c *condition) holds(q *Request) bool {
	return c.matches(q) != c.negated
}

func (c *condition) matches(q *Request) bool {
	if c.of == sourceAddress {
		return q.Source.IsValid() && slices.ContainsFunc(c.addresses, func(p netip.Prefix) bool { return p.Contains(q.Source) })
	}
	tags := q.ResourceTags
	if c.of == requestTag {
		tags = q.RequestTags
	}
	at := slices.IndexFunc(tags, func(t keyvalue.Pair) bool { return t.Key == c.tag })
	if at < 0 {
		return false
	}
	value := tags[at].Value
	return slices.ContainsFunc(c.values, func(want string) bool {
		return value == want || c.like && like(value, want)
	})
}
