package hosting

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/musterhq/muster/internal/domain/session"
)

// Choose sets the caller's own name for the game session. It must be called last: at every door, a hash of all other fields tells a
// repeat from a different request under the same name.
func (cmd *CreateGameSession) Choose(name string) {
	cmd.Name, cmd.Parameters = name, cmd.parametersHash()
}

// parametersHash leaves out fleet, location and name: they are the game session's id. The order of properties does not matter.
func (cmd *CreateGameSession) parametersHash() uint64 {
	h := fnv.New64a()
	put := func(s string) { // length first, so that different lists give different bytes
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
	return max(h.Sum64(), 1) // zero means that the caller chose no name
}
