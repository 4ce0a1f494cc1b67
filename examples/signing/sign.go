// Prints the value of X-Service-Signature for a body: go run sign.go SECRET_FILE BODY_FILE
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"os"
)

// Send the same bytes afterwards: http.NewRequest("POST", url, bytes.NewReader(body)).
func signatureOf(secret, body []byte) string {
	digest := hmac.New(sha256.New, secret)
	digest.Write(body)
	return "sha256=" + hex.EncodeToString(digest.Sum(nil))
}

func main() {
	secret, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	body, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	// White space at its ends and a byte order mark are not part of it.
	secret = bytes.TrimSpace(bytes.TrimPrefix(secret, []byte("\ufeff")))
	fmt.Println(signatureOf(secret, body))
}
