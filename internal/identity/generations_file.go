package identity

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Flush writes the file if an earlier write failed.
func (r *Generations) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeStale()
}

func (r *Generations) writeStale() error {
	if !r.stale {
		return nil
	}
	err := r.write(r.is.Load())
	if err == nil {
		r.stale = false
	}
	return err
}

func (r *Generations) write(x *generations) error {
	if r.dir == "" {
		return nil
	}
	_, installation, err := ReadSecretFile(r.dir, r.key)
	if err != nil {
		return err
	}
	return x.write(r.dir, installation, r.key)
}

func (x *generations) append(to []byte) []byte {
	to = append(to, x.code[:]...)
	to = binary.BigEndian.AppendUint32(to, x.signing.number)
	to = append(to, byte(len(x.all)))
	for _, g := range x.all {
		to = binary.BigEndian.AppendUint32(to, g.number)
		to = append(to, g.secret.key[:]...)
	}
	return to
}

func readGenerations(content []byte) (*generations, error) {
	if len(content) < generationsHead+generationSize || len(content) != generationsHead+int(content[6])*generationSize || content[6] > generationsMax {
		return nil, fmt.Errorf("%d bytes: want 1 to %d generations of the secret", len(content), generationsMax)
	}
	x := &generations{code: [2]byte(content)}
	signing := binary.BigEndian.Uint32(content[2:])
	for content = content[generationsHead:]; len(content) > 0; content = content[generationSize:] {
		g := newGeneration(binary.BigEndian.Uint32(content), [secretSize]byte(content[4:]))
		if g.number == 0 || x.at(g.number) != nil {
			return nil, fmt.Errorf("generation %d of the secret occurs twice, or has no number", g.number)
		}
		x.all = append(x.all, g)
	}
	if x.signing = x.at(signing); x.signing == nil {
		return nil, fmt.Errorf("generation %d of the secret is the one that signs, but it is missing", signing)
	}
	x.arrange()
	return x, nil
}

// single reports whether there is only the generation that the installation began with.
func (x *generations) single() bool {
	return len(x.all) == 1 && x.signing.number == firstGeneration && x.code == codeOf(x.signing.secret)
}

// secret returns a CellSecret with these generations.
func (x *generations) secret() CellSecret {
	if x.single() {
		return CellSecret{key: x.signing.secret.key}
	}
	r := &Generations{changed: make(chan struct{})}
	r.is.Store(x)
	return CellSecret{key: x.signing.secret.key, number: x.signing.number, ring: r}
}

// generationsText begins the text of a secret with generations.
const generationsText = "2."

// Text returns the secret with all generations, for a node that was admitted to the cluster and for backups. Nothing else may reveal it.
func (s CellSecret) Text() string {
	x := s.generations()
	if x.single() {
		return base64.RawURLEncoding.EncodeToString(x.signing.secret.key[:])
	}
	return generationsText + base64.RawURLEncoding.EncodeToString(x.append(nil))
}

// ParseCellSecret parses the result of Text. Its error reveals no part of the text.
func ParseCellSecret(text string) (s CellSecret, err error) {
	if rest, ok := strings.CutPrefix(text, generationsText); ok {
		content, err := base64.RawURLEncoding.Strict().DecodeString(rest)
		if err != nil {
			return s, errors.New("cell secret: want its generations in base64 for URLs")
		}
		x, err := readGenerations(content)
		if err != nil {
			return s, fmt.Errorf("cell secret: %w", err)
		}
		return x.secret(), nil
	}
	key, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(key) != secretSize {
		return s, fmt.Errorf("cell secret: want %d bytes in base64 for URLs", secretSize)
	}
	return CellSecret{key: [secretSize]byte(key)}, nil
}
