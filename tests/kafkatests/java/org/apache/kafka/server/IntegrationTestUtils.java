package org.apache.kafka.server;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/** Requests over a socket, for tests that use no client. Kafka's tests need a class of this name, but Kafka does not publish it. */
public class IntegrationTestUtils {
    public static Socket connect(int port) throws IOException {
        return new Socket("localhost", port);
    }

    public static void sendRequest(Socket socket, byte[] request) throws IOException {
        DataOutputStream out = new DataOutputStream(socket.getOutputStream());
        out.writeInt(request.length);
        out.write(request);
        out.flush();
    }

    @SuppressWarnings("unchecked")
    public static <T extends AbstractResponse> T connectAndReceive(AbstractRequest request, int port) throws IOException {
        RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "client-id", 1);
        try (Socket socket = connect(port)) {
            sendRequest(socket, RequestUtils.serialize(header.data(), header.headerVersion(), request.data(), request.version()).array());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            return (T) AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
        }
    }
}
