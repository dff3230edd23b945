package arena

import (
	"fmt"
	"net"
	"strconv"
)

// portMax is the highest port that the service accepts from a server process.
const portMax = 60000

// Listen opens the players' port. Port 0 means any port that the service accepts: kernels also assign ports above its limit.
func Listen(address string, port int) (net.Listener, error) {
	var tooHigh []net.Listener // kept open, so that the next try gets another port
	defer func() {
		for _, l := range tooHigh {
			l.Close()
		}
	}()
	for {
		l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return nil, fmt.Errorf("listen for players on port %d: %w", port, err)
		}
		if port != 0 || l.Addr().(*net.TCPAddr).Port <= portMax {
			return l, nil
		}
		tooHigh = append(tooHigh, l)
	}
}
