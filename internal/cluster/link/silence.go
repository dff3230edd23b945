package link

import (
	"net"
	"time"
)

// keepAlive detects within 5 seconds that the peer of an idle connection has disappeared.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}

// silenceMax is how long sent data may remain unacknowledged, or wait for room at the peer.
const silenceMax = 5 * time.Second
