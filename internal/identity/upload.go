package identity

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// UploadKey allows a client to upload the files of one build until it expires. Its id and secret are derived from the build and the expiry in the
// token, so every node of the cell recognizes it and nothing is stored. No other door accepts it as an access key.
type UploadKey struct {
	ID, Secret, Token string // in the form for AWS clients; ids of temporary keys begin with ASIA

	Build   string
	Expires time.Time // whole seconds
}

// UploadKey returns the key of a build.
func (s CellSecret) UploadKey(build string, expires time.Time) UploadKey {
	claim := append(binary.BigEndian.AppendUint64(nil, uint64(expires.Unix())), build...)
	s = s.current() // the same generation for id and secret
	id := s.derive(append([]byte("upload-key-id\x00"), claim...))
	secret := s.derive(append([]byte("upload-key-secret\x00"), claim...))
	return UploadKey{
		ID: SessionPrefix + base32.StdEncoding.EncodeToString(id[:10]), Secret: base64.StdEncoding.EncodeToString(secret[:30]),
		Token: base64.StdEncoding.EncodeToString(claim), Build: build, Expires: time.Unix(expires.Unix(), 0),
	}
}

// uploadTokenMax limits the length of a token, in characters.
const uploadTokenMax = 512

// UploadKeyOf returns the key with an id that a token describes. Only a signature with its secret proves that the client has the key.
func (s CellSecret) UploadKeyOf(token, id string) (k UploadKey, ok bool) {
	if len(token) > uploadTokenMax {
		return k, false
	}
	claim, err := base64.StdEncoding.DecodeString(token)
	if err != nil || len(claim) <= 8 {
		return k, false
	}
	ok = s.Accepts("key for an upload", func(g CellSecret) bool {
		x := g.UploadKey(string(claim[8:]), time.Unix(int64(binary.BigEndian.Uint64(claim)), 0))
		is := Equal(x.ID, id)
		if is {
			k = x
		}
		return is
	})
	return k, ok
}
