package agones

import (
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Limits on what a game can use of its agent. Where Agones has limits, these are the same.
const (
	connectionsMax = 32 // on each port
	streamsMax     = 32 // concurrent calls on a connection
	messageMax     = 64 << 10
	headersMax     = 16 << 10
	watchesMax     = 8
	watchEvery     = 100 * time.Millisecond // between two messages of a watch; the second one covers all changes in between

	pairsMax  = 200 // labels, and as many annotations
	listMax   = 1000
	valueMax  = 1024      // bytes of a value in a list, and of a player's id
	memoryMax = 256 << 10 // bytes of all labels, annotations, lists and players that the game has set, without the game session's data
)

// callRate bounds a game's calls and health pings.
var callRate = rate.PerSecond(100, 300)

// turnRate bounds changes of the state, because each is reported to the service and saved to disk.
var turnRate = rate.PerSecond(2, 20)
