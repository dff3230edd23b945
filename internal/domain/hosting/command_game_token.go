package hosting

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/musterhq/muster/internal/domain/session"
)

// Choose takes the caller's own name for the game session. It is called last: a repeat is told from another wish under the
// same name by everything else, whichever door it comes by.
func (cmd *CreateGameSession) Choose(name string) {
	cmd.Name, cmd.Parameters = name, cmd.parametersHash()
}

// parametersHash leaves out fleet, location and name: they are the game session's id. The order of properties means
// nothing.
func (cmd *CreateGameSession) parametersHash() uint64 {
	h := fnv.New64a()
	put := func(s string) { // length first, so that no two lists make the same bytes
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	put(cmd.Title)
	put(cmd.Data)
	put(cmd.Creator)
	for _, p := range slices.SortedFunc(slices.Values(cmd.Properties), func(a, b session.Property) int { return cmp.Compare(a.Key, b.Key) }) {
		put(p.Key)
		put(p.Value)
	}
	var players [4]byte
	binary.BigEndian.PutUint32(players[:], uint32(cmd.PlayersMax))
	h.Write(players[:])
	return max(h.Sum64(), 1) // zero means that nobody chose a name
}
