package gamelift

import (
	"reflect"

	"github.com/aws/smithy-go"
)

// A body of a few bytes can decode to a structure of many: "[{},{},…]" becomes 40 bytes for every three, and a map with
// one entry takes 600. So before a body is decoded, a scan that allocates nothing walks it beside the operation's
// constraints, adds up what the decoder would allocate, and stops at the first byte beyond the operation's bound.

// Bounds of every input, also where the model allows more.
const (
	// inputBodyMin is the smallest bound of a body: an operation with tiny members still accepts unknown members and spaces.
	inputBodyMin = 64 << 10

	// inputMemoryMin is the smallest bound of a decoded input, in bytes.
	inputMemoryMin = 64 << 10

	// inputMemoryMax bounds the decoded input of every operation, in bytes.
	inputMemoryMax = 16 << 20

	// unboundedTextMax stands in for the maximum of a string that has none in the model, in characters. All of them are
	// names, addresses and ARNs.
	unboundedTextMax = 2048

	// unboundedItemsMax stands in for the maximum of a list or a map that has none in the model.
	unboundedItemsMax = 256

	// jsonBytesPerCharacter is the longest form of a character in JSON: two escaped surrogates.
	jsonBytesPerCharacter = 12

	// numberBytesMax is the longest number in JSON. The longest that a writer of doubles makes has 24 bytes.
	numberBytesMax = 64
)

// itemsMax holds maxima that the service has and the model lacks. A key with a slash holds for one input only.
var itemsMax = map[string]int{
	"StartMatchmakingInput/PlayerList": 10,
	"PlayerList":                       200, // of a backfill
	"PlayerAttributeMap":               attributesMax,
	"PlayerAttributeStringList":        attributeListMax,
	"PlayerAttributeStringDoubleMap":   attributePairsMax,
	"PlayerIdsForAcceptMatch":          200,
	"PlayerDataMap":                    25,
	"PlayerLatencyList":                listMax,
	"DesiredPlayerSessionList":         listMax, // --limit-players-per-game-session may allow as many
}

// playedBodyMax bounds bodies of operations that a client key may call, in bytes: three times what game session data with
// all its characters escaped leaves for players and latencies. Any player may have such a key.
const playedBodyMax = 4 << 20

// inputBounds are the largest sizes of an operation's input, in bytes.
type inputBounds struct {
	body   int64 // of the request
	memory int64 // once decoded, as footprints count
}

// boundsOf adds up the maxima of an input's members in the worst encoding. A decoded input may take twice the sum of the
// maxima of its Go values: the decoders grow lists and maps by doubling.
func (p *constraintPlans) boundsOf(input string, c *constraint, clients bool) inputBounds {
	body, memory := p.largest(input, input, c, 0)
	b := inputBounds{body: clamp(body, inputBodyMin, bodyMax), memory: clamp(2*memory, inputMemoryMin, inputMemoryMax)}
	if clients {
		b.body = min(b.body, playedBodyMax)
	}
	return b
}

func clamp(n float64, least, most int64) int64 {
	return int64(min(max(n, float64(least)), float64(most)))
}

// largest returns the bytes of the largest valid value of a shape: on the wire, and decoded. They are floating point numbers
// since nested lists without a maximum make products beyond all integers.
func (p *constraintPlans) largest(input, shapeName string, c *constraint, depth int) (wire, memory float64) {
	if depth > depthMax {
		return 0, 0
	}
	shape := p.model.Shapes[shapeName]
	memory = float64(c.slot)
	if c.pointer {
		memory += float64(c.size)
	}
	switch c.kind {
	case reflect.String:
		characters := float64(unboundedTextMax)
		if c.max != nil {
			characters = *c.max
		}
		return 2 + jsonBytesPerCharacter*characters, memory + 4*characters // UTF-8 has four bytes at most
	case reflect.Slice:
		if c.elem == nil { // a blob, in base64
			n := float64(bodyMax)
			if c.max != nil {
				n = *c.max
			}
			return 4 * n / 3, memory + n
		}
		n := itemsOf(input, shapeName, c)
		w, m := p.largest(input, shape.Member, c.elem, depth+1)
		return n * (w + 1), memory + n*m
	case reflect.Map:
		n := itemsOf(input, shapeName, c)
		kw, km := p.largest(input, shape.Key, c.key, depth+1)
		w, m := p.largest(input, shape.Value, c.elem, depth+1)
		return n * (kw + w + 2), memory + mapFootprint(n, c) + n*(km+m)
	case reflect.Struct:
		if c.time {
			return numberBytesMax, memory
		}
		for i := range c.members {
			m := &c.members[i]
			w, inside := p.largest(input, shape.Members[m.name], m.constraint, depth+1)
			wire, memory = wire+w+float64(len(m.name)+4), memory+inside
		}
		return wire + 2, memory
	default:
		return numberBytesMax, memory
	}
}

func itemsOf(input, shape string, c *constraint) float64 {
	if c.max != nil {
		return *c.max
	}
	if n, ok := itemsMax[input+"/"+shape]; ok {
		return float64(n)
	}
	if n, ok := itemsMax[shape]; ok {
		return float64(n)
	}
	return unboundedItemsMax
}

// mapFootprint is what a Go map of n entries takes: at least one group of eight, and half of it empty after it grew.
func mapFootprint(n float64, c *constraint) float64 {
	return float64(mapBytes) + max(8, 2*n)*float64(entryBytes(c))
}

const (
	mapBytes    = 48
	stringBytes = 16
)

func entryBytes(c *constraint) int { return stringBytes + int(c.elem.slot) + 1 }

// tooMuch refuses an input that would take more memory than any input of its operation has to.
func tooMuch(operation string, most int64) smithy.APIError {
	return commonError(codeEntityTooLarge, "the body is larger than any input of %s: decoded it takes more than %d bytes", operation, most)
}

// footprint adds up what decoding a value takes.
type footprint struct {
	bytes int64
	most  int64
}

// unknownBytes is what the decoders take for a value that is no member of the input, such as the name of a member that
// may not come twice.
const unknownBytes = 64

// add counts bytes and reports whether there is room for them.
func (f *footprint) add(n int64) bool {
	f.bytes += n
	return f.bytes <= f.most
}

// item counts one element of a list, or one value of a map with its key.
func (f *footprint) item(c *constraint, first bool) bool {
	switch {
	case c == nil || c.elem == nil:
		return f.add(unknownBytes)
	case c.kind == reflect.Map && first:
		return f.add(int64(mapBytes + 8*entryBytes(c)))
	case c.kind == reflect.Map:
		return f.add(2 * int64(entryBytes(c)))
	default: // twice, since lists grow by doubling
		return f.add(2 * int64(c.elem.slot))
	}
}

// own is what a value takes beside its place in what it is a part of.
func (c *constraint) own() int64 {
	if c != nil && c.pointer {
		return int64(c.size)
	}
	return 0
}

// inside is the constraint of what a list or map holds, if that is known.
func (c *constraint) inside(kind reflect.Kind) *constraint {
	if c == nil || c.kind != kind {
		return nil
	}
	return c.elem
}

// member finds a member by its name on the wire. Structures have few members, so a walk is faster than a map.
func (c *constraint) member(name []byte) *constraint {
	if c == nil || c.kind != reflect.Struct {
		return nil
	}
	for i := range c.members {
		if m := &c.members[i]; m.name == string(name) {
			return m.constraint
		}
	}
	return nil
}
