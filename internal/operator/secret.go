package operator

import (
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/secretrotation"
)

// SecretPath is the path where GET lists the generations of the cell's secret. POST SecretPath/rotate creates a new one, and POST
// SecretPath/NUMBER/retire ends the acceptance of an earlier one's signatures.
const SecretPath = "secret"

// SecretList is the answer to GET secret and POST secret/rotate.
type SecretList struct {
	Generations []secretrotation.Document `json:"generations"`
}

// SecretRotation is the body of POST secret/rotate.
type SecretRotation struct {
	OverlapSeconds int64 `json:"overlapSeconds,omitempty"` // how long the current generation is accepted; absent: 90 days
}

func (d *Door) secretRoutes() {
	const change = "change the secret of the installation"
	d.handle("GET "+SecretPath, d.forAdmins(change, d.listSecrets))
	d.handle("POST secret/rotate", d.forAdmins(change, changing(http.StatusCreated, d.rotateSecret)))
	d.handle("POST secret/{number}/retire", d.forAdmins(change, changing(http.StatusOK, d.retireSecret)))
}

func (d *Door) listSecrets(w http.ResponseWriter, r *http.Request, _ access.Actor, _ []byte) error {
	all, err := d.config.Secrets.List(r.Context())
	return reply(w, http.StatusOK, SecretList{all}, err)
}

func (d *Door) rotateSecret(r *http.Request, by access.Actor, in *SecretRotation) (any, error) {
	if most := int64(access.SecretOverlapMax / time.Second); in.OverlapSeconds < 0 || in.OverlapSeconds > most {
		return nil, domain.Refuse(domain.Invalid, "overlapSeconds %d: want %d to %d", in.OverlapSeconds, int64(access.SecretOverlapMin/time.Second), most)
	}
	all, err := d.config.Secrets.Rotate(r.Context(), by, time.Duration(in.OverlapSeconds)*time.Second)
	return SecretList{all}, err
}

func (d *Door) retireSecret(r *http.Request, by access.Actor, in *secretrotation.Retirement) (any, error) {
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 32)
	if err != nil || in.Number != 0 && uint64(in.Number) != number {
		return nil, domain.Refuse(domain.NotFound, "generation %.40q: want the number of one, as GET secret lists them", r.PathValue("number"))
	}
	in.Number = uint32(number)
	return d.config.Secrets.Retire(r.Context(), by, *in)
}
