package agones

import (
	"net"
	"sync"
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

// limited accepts at most n concurrent connections. It closes any further one at once, because a client that waited would not see why.
func limited(l net.Listener, n int) net.Listener { return &limit{l, make(chan struct{}, n)} }

type limit struct {
	net.Listener
	slots chan struct{}
}

func (l *limit) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			c.Close()
		}
	}
}

type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}
