package gamelift

import (
	"reflect"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// A body of a few bytes can decode to a large structure: "[{},{},…]" becomes 40 bytes for every three, and a map with one
// entry takes 600. So before decoding a body, a scan that does not allocate walks it alongside the operation's constraints,
// adds up what the decoder would allocate, and stops at the first byte beyond the operation's bound.

// Bounds of every input, even where the model allows more.
const (
	// inputBodyMin is the lowest bound of a body, so that operations with tiny members still accept unknown members and
	// spaces.
	inputBodyMin = 64 << 10

	// inputMemoryMin is the lowest bound of a decoded input, in bytes.
	inputMemoryMin = 64 << 10

	// inputMemoryMax bounds the decoded input of every operation, in bytes.
	inputMemoryMax = 16 << 20

	// unboundedTextMax is the maximum assumed for a string without one in the model, in characters. All such strings are
	// names, addresses and ARNs.
	unboundedTextMax = 2048

	// unboundedItemsMax is the maximum assumed for a list or map without one in the model.
	unboundedItemsMax = 256

	// jsonBytesPerCharacter is the longest JSON form of a character: two escaped surrogates.
	jsonBytesPerCharacter = 12

	// numberBytesMax is the longest accepted number in JSON. The longest form of a double has 24 bytes.
	numberBytesMax = 64
)

// itemsMax lists maxima that the service has and the model lacks. A key with a slash applies to one input only.
var itemsMax = map[string]int{
	"StartMatchmakingInput/PlayerList": 10,
	"PlayerList":                       200, // of a backfill
	"PlayerAttributeMap":               ruleset.AttributesMax,
	"PlayerAttributeStringList":        ruleset.ListMax,
	"PlayerAttributeStringDoubleMap":   ruleset.PairsMax,
	"PlayerIdsForAcceptMatch":          200,
	"PlayerDataMap":                    25,
	"PlayerLatencyList":                listMax,
	"DesiredPlayerSessionList":         listMax, // --limit-players-per-game-session may allow as many
}

// playedBodyMax bounds the bodies of operations that a client key may call, in bytes. It is three times what fully escaped
// game session data leaves for players and latencies. Any player may have such a key.
const playedBodyMax = 4 << 20

// inputBounds are the largest sizes of an operation's input, in bytes.
type inputBounds struct {
	body   int64 // of the request
	memory int64 // once decoded, as computed by footprint
}

// boundsOf adds up the maxima of an input's members in their longest encoding. A decoded input may take twice the sum of the
// maxima of its Go values, because the decoders grow lists and maps by doubling.
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

// largest returns the size in bytes of the largest valid value of a shape: on the wire, and decoded. The sizes are
// floating-point numbers, because nested lists without a maximum give products beyond the range of integers.
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
		return 2 + jsonBytesPerCharacter*characters, memory + 4*characters // a character has at most four bytes in UTF-8
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

// mapFootprint returns the memory of a Go map with n entries: at least one group of eight, half empty after it grew.
func mapFootprint(n float64, c *constraint) float64 {
	return float64(mapBytes) + max(8, 2*n)*float64(entryBytes(c))
}

const (
	mapBytes    = 48
	stringBytes = 16
)

func entryBytes(c *constraint) int { return stringBytes + int(c.elem.slot) + 1 }

// tooMuch returns the refusal of an input that would take more memory than any valid input of its operation.
func tooMuch(operation string, most int64) smithy.APIError {
	return commonError(codeEntityTooLarge, "the body is larger than any input of %s: decoded it takes more than %d bytes", operation, most)
}

// footprint adds up the memory for decoding a value.
type footprint struct {
	bytes int64
	most  int64
}

// unknownBytes is what the decoders allocate for a value that is not a member of the input, such as the name of a member, to
// detect duplicates.
const unknownBytes = 64

// add counts bytes and reports whether they fit.
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
	default: // twice, because lists grow by doubling
		return f.add(2 * int64(c.elem.slot))
	}
}

// own returns the memory of a value beyond its slot in the containing value.
func (c *constraint) own() int64 {
	if c != nil && c.pointer {
		return int64(c.size)
	}
	return 0
}

// inside returns the constraint of the elements of a list or map, if known.
func (c *constraint) inside(kind reflect.Kind) *constraint {
	if c == nil || c.kind != kind {
		return nil
	}
	return c.elem
}

// member finds a member by its name on the wire. Structures have few members, so a linear search is faster than a map.
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
