package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	signedAt   = "20060102T150405Z"
	mostSkew   = 5 * time.Minute
	noPayload  = "UNSIGNED-PAYLOAD"
	algorithm  = "AWS4-HMAC-SHA256"
	terminator = "aws4_request"
)

// authorization is the header of that name, taken apart.
type authorization struct {
	keyID, day, region, service string
	signed                      []string
	signature                   string
}

// caller is who signed a request.
type caller struct {
	arn, userID, secret string
	region, service     string
}

func readAuthorization(text string) (a authorization, ok bool) {
	rest, ok := strings.CutPrefix(text, algorithm+" ")
	if !ok {
		return a, false
	}
	fields := map[string]string{}
	for _, part := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[4] != terminator || fields["SignedHeaders"] == "" || fields["Signature"] == "" {
		return a, false
	}
	return authorization{scope[0], scope[1], scope[2], scope[3], strings.Split(fields["SignedHeaders"], ";"),
		fields["Signature"]}, true
}

// verify proves a request's signature by making it again.
func (d *awsDoor) verify(r *http.Request, body []byte, now time.Time) (*caller, *awsError) {
	text := r.Header.Get("Authorization")
	if text == "" {
		return nil, &awsError{403, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	a, ok := readAuthorization(text)
	if !ok {
		return nil, &awsError{400, "IncompleteSignature", "Authorization header requires Credential, SignedHeaders and " +
			"Signature. Authorization=" + text}
	}
	key, refusal := d.known(a.keyID, r.Header.Get("X-Amz-Security-Token"), now)
	if refusal != nil {
		return nil, refusal
	}
	at, err := time.Parse(signedAt, r.Header.Get("X-Amz-Date"))
	if err != nil || at.Format("20060102") != a.day {
		return nil, mismatch("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP")
	}
	if at.Before(now.Add(-mostSkew)) {
		return nil, mismatch(fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)", at.Format(signedAt),
			now.Add(-mostSkew).UTC().Format(signedAt), now.UTC().Format(signedAt)))
	}
	if at.After(now.Add(mostSkew)) {
		return nil, mismatch(fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)",
			at.Format(signedAt), now.Add(mostSkew).UTC().Format(signedAt), now.UTC().Format(signedAt)))
	}
	if a.region != d.conf.Region {
		return nil, mismatch(fmt.Sprintf("Credential should be scoped to a valid region, not '%s'.", a.region))
	}
	for _, needed := range d.mustSign(r) {
		if !slices.Contains(a.signed, needed) {
			return nil, mismatch("'" + needed + "' must be a 'SignedHeader' in the AWS Authorization.")
		}
	}
	if !hmac.Equal([]byte(signature(r, body, &a, at, key.secret)), []byte(a.signature)) {
		return nil, mismatch("The request signature we calculated does not match the signature you provided. Check your " +
			"AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	key.region, key.service = a.region, a.service
	return key, nil
}

func mismatch(message string) *awsError { return &awsError{403, "SignatureDoesNotMatch", message} }

// mustSign are the headers without which a signature proves too little.
func (d *awsDoor) mustSign(r *http.Request) []string {
	list := []string{"host"}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Amz-") && name != "X-Amzn-Trace-Id" {
			list = append(list, strings.ToLower(name))
		}
	}
	return list
}

func signature(r *http.Request, body []byte, a *authorization, at time.Time, secret string) string {
	payload := digest(body)
	if r.Header.Get("X-Amz-Content-Sha256") == noPayload {
		payload = noPayload
	}
	canonical := strings.Join([]string{r.Method, canonicalPath(r.URL.EscapedPath()), canonicalQuery(r.URL.RawQuery),
		canonicalHeaders(r, a.signed), strings.Join(a.signed, ";"), payload}, "\n")
	scope := strings.Join([]string{a.day, a.region, a.service, terminator}, "/")
	toSign := strings.Join([]string{algorithm, at.Format(signedAt), scope, digest([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{a.day, a.region, a.service, terminator} {
		key = seal(key, part)
	}
	return hex.EncodeToString(seal(key, toSign))
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func seal(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalPath encodes what came encoded once more, as all services but S3 have it.
func canonicalPath(path string) string {
	if path == "" {
		return "/"
	}
	return strings.ReplaceAll(encode(path), "%2F", "/")
}

func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	var pairs [][2]string
	for _, part := range strings.Split(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		pairs = append(pairs, [2]string{recode(name), recode(value)})
	}
	slices.SortFunc(pairs, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
	texts := make([]string, len(pairs))
	for i, pair := range pairs {
		texts[i] = pair[0] + "=" + pair[1]
	}
	return strings.Join(texts, "&")
}

func recode(text string) string {
	plain, err := url.PathUnescape(text) // a plus is a plus
	if err != nil {
		plain = text
	}
	return encode(plain)
}

func canonicalHeaders(r *http.Request, signed []string) string {
	var out strings.Builder
	for _, name := range signed {
		values := r.Header.Values(name)
		if name == "host" {
			values = []string{r.Host}
		}
		if name == "content-length" && len(values) == 0 {
			values = []string{fmt.Sprint(r.ContentLength)}
		}
		for i, value := range values {
			values[i] = strings.Join(strings.Fields(value), " ")
		}
		out.WriteString(name + ":" + strings.Join(values, ",") + "\n")
	}
	return out.String()
}

// encode leaves what RFC 3986 leaves, and writes the rest in upper-case hexadecimal.
func encode(text string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
	var out strings.Builder
	for i := range len(text) {
		if strings.IndexByte(plain, text[i]) >= 0 {
			out.WriteByte(text[i])
		} else {
			fmt.Fprintf(&out, "%%%02X", text[i])
		}
	}
	return out.String()
}
