package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
)

type computesCommand struct {
	RotateToken rotateTokenCommand `cmd:"" name:"rotate-token" help:"Replace the auth token of a compute at once, for example after a leak: earlier tokens become void, and connections that were made with one end."`
}

type rotateTokenCommand struct {
	serviceFlags
	KeepLinks bool `name:"keep-links" help:"Keep connections and send their game servers the new token. Not after a leak: a connected intruder would receive it, too."`

	Fleet   string `arg:"" help:"Id of the fleet."`
	Compute string `arg:"" help:"Name of the compute."`
}

func (c *rotateTokenCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	endpoint, key, err := c.reach(ctx, env, func(r identity.Role) bool { return r == identity.Admin })
	if err != nil {
		return err
	}
	query := url.Values{"fleet": {c.Fleet}, "compute": {c.Compute}, "keep-links": {strconv.FormatBool(c.KeepLinks)}}
	body, err := askOperator(ctx, endpoint, key, signingRegion(env), http.MethodPost, "computes/rotate-token?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	var rotated operator.RotatedToken
	if err := json.Unmarshal(body, &rotated); err != nil {
		return fmt.Errorf("answer of the service: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "compute %s of fleet %s has a new auth token, valid until %s; all earlier tokens are void. Get it with get-compute-auth-token.\n",
		rotated.Compute, rotated.Fleet, rotated.Expires.Format(time.RFC3339))
	return err
}
