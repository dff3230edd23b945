package usage

import (
	"os"
	"testing"
	"time"
)

func TestOwnProcess(t *testing.T) {
	memory := make([]byte, 32<<20)
	for i := range memory {
		memory[i] = byte(i)
	}
	end := time.Now().Add(time.Minute)
	for OfProcesses([]int{os.Getpid()}).CPU == 0 && time.Now().Before(end) {
	}
	got := OfProcesses([]int{os.Getpid(), 1 << 30})
	if got.CPU <= 0 || got.Memory < 32<<20 {
		t.Errorf("%+v, want some processor time and 32 MiB", got)
	}
	_ = memory[5]
}

func TestHost(t *testing.T) {
	h := OfHost(t.TempDir())
	if h.Busy <= 0 || h.Memory <= 0 || h.MemoryUsed <= 0 || h.MemoryUsed > h.Memory || h.Disk <= 0 || h.DiskFree > h.Disk || h.OpenFiles <= 0 || h.AgentMemory <= 0 {
		t.Errorf("%+v", h)
	}
}

func TestParse(t *testing.T) {
	busy, idle := processors("cpu  100 10 50 1000 40 5 3 2 7 8")
	if busy != 170*tick || idle != 1040*tick {
		t.Errorf("busy %v, idle %v", busy, idle)
	}
	if got := CPUPercent(Host{Busy: 100, Idle: 100}, Host{Busy: 150, Idle: 250}); got != 25 {
		t.Errorf("%v %%, want 25", got)
	}
	if got := CPUPercent(Host{Busy: 100}, Host{Busy: 100}); got != 0 {
		t.Errorf("no time: %v", got)
	}
	in, out := network("Inter-| x\n face |bytes\n    lo: 5 0 0 0 0 0 0 0 5 0\n  eth0: 10 1 0 0 0 0 0 0 20 1\neth1:1 1 0 0 0 0 0 0 2 1\n")
	if in != 11 || out != 22 {
		t.Errorf("in %d, out %d", in, out)
	}
	if got := kilobytes("MemTotal:       10 kB\nMemAvailable: 4 kB\n", "MemAvailable:"); got != 4096 {
		t.Errorf("%d", got)
	}
	var h Host
	h.disks("   8 0 sda 10 1 20 5 30 2 40 7 0 0\n 8 1 sda1 9 1 19 5 29 2 39 7\n 259 0 nvme0n1 1 0 2 0 3 0 4 0\n half", func(name string) bool { return name != "sda1" })
	if h.DiskReads != 11 || h.DiskRead != 22*512 || h.DiskWrites != 33 || h.DiskWritten != 44*512 {
		t.Errorf("%+v", h)
	}
}
