package ports

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Ephemeral returns the ports that the kernel gives to outgoing connections, if it says so. A game server's port among them may be taken at any moment.
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

// CheckEphemeral returns an error if the range shares ports with those of the kernel.
func CheckEphemeral(r Range) error {
	kernel, ok := Ephemeral()
	if !ok || !r.Overlaps(kernel) {
		return nil
	}
	return fmt.Errorf("ports %v: the kernel gives %v to outgoing connections; want a range outside of that, or change net.ipv4.ip_local_port_range", r, kernel)
}
