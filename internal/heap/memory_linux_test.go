package heap

import (
	"testing"
	"testing/fstest"
)

func TestLimitOfControlGroups(t *testing.T) {
	const service = "0::/games.slice/muster.service\n"
	for name, test := range map[string]struct {
		groups string
		limits map[string]string
		want   uint64
	}{
		"none":                 {service, map[string]string{"games.slice/muster.service/memory.max": "max"}, 0},
		"its own":              {service, map[string]string{"games.slice/memory.max": "max", "games.slice/muster.service/memory.max": "1073741824"}, 1 << 30},
		"of the group above":   {service, map[string]string{"games.slice/memory.max": "1073741824", "games.slice/muster.service/memory.max": "max"}, 1 << 30},
		"the lower of both":    {service, map[string]string{"games.slice/memory.max": "1073741824", "games.slice/muster.service/memory.max": "2147483648"}, 1 << 30},
		"a container":          {"0::/\n", map[string]string{"memory.max": "1073741824"}, 1 << 30},
		"version 1":            {"4:cpu,memory:/muster\n0::/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712", "memory/muster/memory.limit_in_bytes": "1073741824"}, 1 << 30},
		"version 1, none":      {"4:memory:/muster\n", map[string]string{"memory/muster/memory.limit_in_bytes": "9223372036854771712"}, 0},
		"version 1, container": {"4:memory:/docker/5be1\n1:name=systemd:/docker/5be1\n", map[string]string{"memory/memory.limit_in_bytes": "1073741824"}, 1 << 30},
		"no groups":            {"", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(test.groups)}}
			for file, text := range test.limits {
				root["sys/fs/cgroup/"+file] = &fstest.MapFile{Data: []byte(text + "\n")}
			}
			if got := groupLimit(root); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
