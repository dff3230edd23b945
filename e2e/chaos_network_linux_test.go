package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wires connect network namespaces, one for each node of a cluster. Each namespace has its own loopback and one interface, whose packets this process
// forwards to the others. So it can lose, delay and drop packets for each direction separately, and needs only the kernel's namespaces and TUN.
type wires struct {
	ends  []*namespace
	lines [][]atomic.Pointer[line] // from, to
	net   atomic.Int32             // third byte of all addresses
	done  sync.WaitGroup
}

// line is one direction between two nodes.
type line struct {
	cut   bool
	delay time.Duration
	loss  float64 // of its packets
}

// namespace is where a node runs.
type namespace struct {
	file *os.File
	tun  *os.File
}

// packetMax is the size of the largest packet. It exceeds Ethernet's, to save work.
const packetMax = 16 << 10

// newWires makes n namespaces. It skips the test on a machine that does not allow that.
func newWires(t *testing.T, n int) *wires {
	t.Helper()
	w := &wires{}
	t.Cleanup(w.close)
	for i := range n {
		end, err := newNamespace(i)
		if err != nil {
			cannotRun(t, "no network namespaces on this machine, which need root and /dev/net/tun: %v", err)
		}
		w.ends = append(w.ends, end)
		w.lines = append(w.lines, make([]atomic.Pointer[line], n))
	}
	for from := range w.ends {
		w.done.Go(func() { w.carry(from) })
	}
	return w
}

func (w *wires) close() {
	for _, end := range w.ends {
		end.tun.Close()
		end.file.Close()
	}
	w.done.Wait()
}

// address is that of a node's interface.
func (w *wires) address(node int) string { return fmt.Sprintf("10.99.%d.%d", w.net.Load(), node+1) }

// renumber gives all nodes other addresses. Connections between the old ones are lost.
func (w *wires) renumber() error {
	w.net.Store((w.net.Load() + 1) % 250)
	for node, end := range w.ends {
		if err := end.in(func() error { return setAddress(w.address(node)) }); err != nil {
			return err
		}
	}
	return nil
}

// heal repairs all lines.
func (w *wires) heal() { w.set(func(int, int) *line { return nil }) }

// set sets all lines.
func (w *wires) set(of func(from, to int) *line) {
	for from := range w.lines {
		for to := range w.lines[from] {
			w.lines[from][to].Store(of(from, to))
		}
	}
}

// carry forwards the packets of one namespace.
func (w *wires) carry(from int) {
	packet := make([]byte, 64<<10)
	for {
		n, err := w.ends[from].tun.Read(packet)
		if err != nil {
			return
		}
		const destination = 19 // its last byte, in an IPv4 header
		if n < 20 || packet[0]>>4 != 4 {
			continue
		}
		to := int(packet[destination]) - 1
		if to < 0 || to >= len(w.ends) {
			continue
		}
		switch x := w.lines[from][to].Load(); {
		case x == nil:
			_, _ = w.ends[to].tun.Write(packet[:n]) // a packet may be lost
		case x.cut, x.loss > 0 && rand.Float64() < x.loss:
		default:
			later := append([]byte(nil), packet[:n]...)
			time.AfterFunc(x.delay, func() { _, _ = w.ends[to].tun.Write(later) })
		}
	}
}

// newNamespace makes a namespace with the address of a node.
func newNamespace(node int) (*namespace, error) {
	type made struct {
		*namespace
		error
	}
	result := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends with the goroutine
		n, err := enterNamespace(node)
		result <- made{n, err}
	}()
	x := <-result
	return x.namespace, x.error
}

func enterNamespace(node int) (*namespace, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("unshare: %w", err)
	}
	file, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	if err := configure(fd, new(wires).address(node)); err != nil {
		file.Close()
		unix.Close(fd)
		return nil, err
	}
	return &namespace{file: file, tun: os.NewFile(uintptr(fd), "tun")}, nil // not before: the poller wants an interface
}

// interfaceName is that of the one interface of a namespace.
const interfaceName = "node"

// configure gives this thread's namespace its two interfaces.
func configure(tun int, address string) error {
	ifr, err := unix.NewIfreq(interfaceName)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(tun, unix.TUNSETIFF, ifr); err != nil {
		return fmt.Errorf("TUNSETIFF: %w", err)
	}
	up := func(ifr *unix.Ifreq) error { ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	return errors.Join(
		setAddress(address),
		setInterface(interfaceName, unix.SIOCSIFMTU, func(ifr *unix.Ifreq) error { ifr.SetUint32(packetMax); return nil }),
		setInterface(interfaceName, unix.SIOCSIFFLAGS, up),
		setInterface("lo", unix.SIOCSIFFLAGS, up),
	)
}

// setAddress gives the interface of this thread's namespace an address, instead of the one that it has.
func setAddress(address string) error {
	return errors.Join(
		setInterface(interfaceName, unix.SIOCSIFADDR, func(ifr *unix.Ifreq) error { return ifr.SetInet4Addr(net.ParseIP(address).To4()) }),
		setInterface(interfaceName, unix.SIOCSIFNETMASK, func(ifr *unix.Ifreq) error { return ifr.SetInet4Addr([]byte{255, 255, 255, 0}) }),
	)
}

func setInterface(name string, request uint, fill func(*unix.Ifreq) error) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		err = fill(ifr)
	}
	if err == nil {
		err = unix.IoctlIfreq(s, request, ifr)
	}
	if err != nil {
		return fmt.Errorf("interface %s, ioctl %#x: %w", name, request, err)
	}
	return nil
}

// in calls f on a thread in the namespace.
func (n *namespace) in(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it
		err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// dial connects to an address as a program in the namespace sees it.
func (n *namespace) dial(ctx context.Context, _, address string) (conn net.Conn, err error) {
	err = n.in(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp4", address)
		return err
	})
	return conn, err
}
