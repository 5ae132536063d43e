# MXNet 1.9.1 for Hopper GPUs: NVIDIA's last container with it. See docs/gpu.md. Not run by the project.
FROM nvcr.io/nvidia/mxnet:24.06-py3

WORKDIR /mxopt
COPY . .

# Without their dependencies: MXNet, NumPy and OpenCV are the container's own.
RUN python -m pip install --no-cache-dir --no-deps gluoncv==0.10.5.post0 gluonnlp==0.10.0 \
      autocfg==0.0.8 yacs==0.1.8 \
 && python -m pip install --no-cache-dir pooch rich tqdm psutil nvidia-ml-py sacrebleu sacremoses \
      sentencepiece tflite jinja2 pyyaml nbclient nbconvert nbformat ipykernel packaging \
 && python -m pip install --no-cache-dir --no-deps --editable . \
 && python -c "import mxopt, mxnet; print(mxnet.__version__, mxnet.runtime.Features().is_enabled('CUDA'))"

CMD ["mxopt", "doctor"]
