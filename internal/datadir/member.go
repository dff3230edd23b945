package datadir

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// memberFile marks a data directory as that of a cluster node. It is written before any other file of the node, so a crash during
// setup creates neither a second cluster nor a second node.
const (
	memberFile   = "cluster.json"
	memberFormat = 1
)

// Ways in which a directory became that of a node.
const (
	founded = "founded" // an empty directory began a cluster
	adopted = "adopted" // a single node's data began a cluster
	joined  = "joined"  // an empty directory joined a cluster
)

// member is the content of the file.
type member struct {
	Format   int       `json:"format"`
	Cluster  uuid.UUID `json:"cluster,omitzero"` // id of the installation; none while the node has not been admitted
	Node     string    `json:"node"`             // permanent id of the node
	Begun    string    `json:"begun"`
	Complete bool      `json:"complete"`        // every part exists
	Voted    bool      `json:"voted,omitempty"` // it has had a vote; if it has none now, an operator removed it
}

// InCluster is the error when the data directory of a node is opened as that of a single machine.
type InCluster struct{ Dir, Node string }

func (e *InCluster) Error() string {
	return fmt.Sprintf("%s is the data directory of node %s of a cluster: start it with --cluster-listen. "+
		"`muster cluster leave` turns the last node of a cluster back into a single machine", e.Dir, e.Node)
}

// checkSingle refuses the data directory of a node.
func checkSingle(dir string) error {
	m, err := readMember(dir)
	if err != nil || m == nil {
		return err
	}
	return &InCluster{dir, m.Node}
}

func readMember(dir string) (*member, error) {
	path := filepath.Join(dir, memberFile)
	m, err := readJSON[member](path)
	if err != nil || m == nil {
		return nil, err
	}
	known := m.Begun == founded || m.Begun == adopted || m.Begun == joined
	if m.Format != memberFormat || m.Node == "" || !known || m.Complete && m.Cluster == uuid.Nil {
		return nil, fmt.Errorf("read %s: format %d, node %q, begun %q: this release reads format %d", path, m.Format, m.Node, m.Begun, memberFormat)
	}
	return m, nil
}

func (m *member) write(dir string) error {
	return writeJSON(filepath.Join(dir, memberFile), m)
}

// newNodeID returns an id that people can recognise and that no earlier node had.
func newNodeID() string {
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, host)
	host = strings.Trim(host[:min(len(host), 40)], "-")
	random := make([]byte, 4)
	rand.Read(random) // never fails: since Go 1.24 it ends the program instead
	return cmp.Or(host, "node") + "-" + hex.EncodeToString(random)
}
