package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/musterhq/muster/internal/operator"
)

// operatorTimeout is for a service that hangs: somebody waits at a terminal.
const operatorTimeout = 30 * time.Second

// askOperator sends a signed request without a body to the operators' door, and gives the body of the answer.
func askOperator(ctx context.Context, env environment, key aws.Credentials, method, endpoint, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(endpoint, "/")+operator.Prefix+path, nil)
	if err != nil {
		return nil, err
	}
	if key.AccessKeyID != "" {
		region := cmp.Or(env["AWS_REGION"], env["AWS_DEFAULT_REGION"], "us-east-1") // any is served
		nothing := sha256.Sum256(nil)
		if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(nothing[:]), "gamelift", region, time.Now()); err != nil {
			return nil, fmt.Errorf("sign the request: %w", err)
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", noService(endpoint, err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		var problem operator.Problem
		if json.Unmarshal(body, &problem) != nil || problem.Message == "" {
			problem.Message = strings.TrimSpace(string(body))
		}
		return nil, fmt.Errorf("the service answers: %s", problem.Message)
	}
	return body, nil
}
