package ports

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Ephemeral returns the range from which the kernel takes ports for outgoing connections, if the kernel reports it. A game server's port in
// this range may be taken at any time.
func Ephemeral() (Range, bool) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return Range{}, false
	}
	return parseEphemeral(string(text))
}

func parseEphemeral(text string) (Range, bool) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return Range{}, false
	}
	first, errA := strconv.Atoi(fields[0])
	last, errB := strconv.Atoi(fields[1])
	return Range{first, last}, errA == nil && errB == nil
}

// CheckEphemeral returns an error if the range overlaps the kernel's.
func CheckEphemeral(r Range) error {
	kernel, ok := Ephemeral()
	if !ok || !r.Overlaps(kernel) {
		return nil
	}
	return fmt.Errorf("ports %v: the kernel gives %v to outgoing connections; want a range outside of that, or change net.ipv4.ip_local_port_range", r, kernel)
}
